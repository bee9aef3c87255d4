// Highlighting of tests, in whichever format: what a reader looks for is the orders, the scopes and the registers.
import { HighlightStyle, StreamLanguage, syntaxHighlighting, tags } from "./vendor/codemirror.js";

const ORDERS = /^\.(weak|relaxed|acquire|release|acq_rel|sc|volatile|mmio)(?![\w])/;
const SCOPES = /^\.(cta|cluster|gpu|sys)(?![\w])/;
const TYPES = /^\.(?:[usfb](?:8|16|32|64|128)|pred|v[248])(?![\w])/;
const OPCODES =
  /^(?:ld|st|sust|suld|tld|atom|red|fence|membar|bar|barrier|mbarrier|cp|mov|add|sub|mul|mad|and|or|xor|not|setp|selp|bra|ret|exit|shl|shr|cvt|cvta|mapa|tensormap|tcgen05|wgmma|multimem|griddepcontrol|activemask|shfl|vote|redux|elect|discard|prefetch|min|max|xchg|fma|neg|abs)(?![\w])/;

const language = StreamLanguage.define({
  startState: () => ({ comment: null, title: true, head: true }),
  token(stream, state) {
    if (state.comment) {
      if (stream.skipTo(state.comment)) {
        stream.match(state.comment);
        state.comment = null;
      } else stream.skipToEnd();
      return "comment";
    }
    if (state.head && state.title && stream.sol() && stream.match(/^\s*(?=\/\/|\.[a-z])/)) state.head = false; // .test, .ptx
    if (state.title && stream.sol() && stream.match(/^PTX\s.*/)) {
      state.title = false;
      return "heading";
    }
    if (state.head && stream.sol()) {
      if (stream.peek() === "{") state.head = false;
      else if (stream.match(/^[A-Za-z][\w.-]*\s*=/)) return "propertyName";
      else {
        stream.skipToEnd();
        return "string";
      }
    }
    if (state.head) {
      stream.skipToEnd();
      return "string";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("(*") || stream.match("/*")) {
      state.comment = stream.current() === "(*" ? "*)" : "*/";
      return "comment";
    }
    if (stream.match(/^\/\/.*/)) return "comment";
    if (stream.match(ORDERS)) return "keyword";
    if (stream.match(SCOPES)) return "typeName";
    if (stream.match(TYPES)) return "meta";
    if (stream.match(/^\.[\w:]+/)) return "meta";
    if (stream.match(/^(?:~?exists|forall|locations|filter|assert|permit|require)(?![\w])/)) return "controlKeyword";
    if (stream.match(/^(?:P\d+|d\d+\.b\d+\.t\d+)(?![\w.])/)) return "labelName";
    if (stream.match(OPCODES)) return "operatorKeyword";
    if (stream.match(/^-?(?:0x[\da-fA-F]+|\d+)/)) return "number";
    if (stream.match(/^%?[A-Za-z_$][\w$]*/)) return "variableName";
    stream.next();
    return null;
  },
});

const style = HighlightStyle.define(
  [
    [tags.heading, "heading"], [tags.propertyName, "key"], [tags.string, "text"], [tags.comment, "comment"],
    [tags.keyword, "order"], [tags.typeName, "scope"], [tags.meta, "meta"], [tags.controlKeyword, "control"],
    [tags.labelName, "thread"], [tags.operatorKeyword, "opcode"], [tags.number, "number"],
  ].map(([tag, name]) => ({ tag, class: `t-${name}` })),
);

/** The language of litmus tests, for the editor. */
export const litmus = [language, syntaxHighlighting(style)];

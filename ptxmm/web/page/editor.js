// The editor: CodeMirror in a shadow tree, where it may add style sheets although the page allows none but its own.
import {
  EditorState, EditorView, Transaction, defaultKeymap, drawSelection, highlightActiveLine,
  highlightActiveLineGutter, history, historyKeymap, keymap, lineNumbers, lintKeymap, setDiagnostics,
} from "./vendor/codemirror.js";
import { litmus } from "./litmus.js";

const look = EditorView.theme({
  "&": { fontSize: "13px", backgroundColor: "var(--field)", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", maxHeight: "min(62vh, 560px)", minHeight: "180px" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--faint)", border: "none", paddingLeft: "4px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--line-active)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad) 1.5px",
    textUnderlineOffset: "3px",
    textDecorationSkipInk: "none",
  },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--edge)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-panels": { backgroundColor: "var(--card)", color: "var(--ink)" },
  ".t-heading": { color: "var(--ink)", fontWeight: "700" },
  ".t-key": { color: "var(--muted)" },
  ".t-text": { color: "var(--muted)" },
  ".t-comment": { color: "var(--muted)", fontStyle: "italic" },
  ".t-order": { color: "var(--c-order)", fontWeight: "700" },
  ".t-scope": { color: "var(--c-scope)", fontWeight: "600" },
  ".t-meta": { color: "var(--muted)" },
  ".t-control": { color: "var(--c-order)" },
  ".t-thread": { color: "var(--c-thread)", fontWeight: "600" },
  ".t-opcode": { color: "var(--c-opcode)" },
  ".t-number": { color: "var(--c-number)" },
});

/** An editor in `place`. `edited(text)`: the user changed it; `submit()`: Ctrl-Enter. */
export function editor(place, edited, submit) {
  const root = place.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        litmus,
        look,
        EditorView.contentAttributes.of({ "aria-label": "Test", autocapitalize: "off", tabindex: "0" }),
        keymap.of([{ key: "Mod-Enter", run: () => (submit(), true) }, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        EditorView.updateListener.of((update) => {
          const own = update.transactions.some((t) => t.docChanged && t.annotation(Transaction.remote));
          if (update.docChanged && !own) edited(update.state.doc.toString());
        }),
      ],
    }),
  });

  return {
    focus: () => view.focus(),
    text: () => view.state.doc.toString(),

    /** Show `text`, as nobody's edit. */
    show(text) {
      if (text === view.state.doc.toString()) return;
      const { main } = view.state.selection;
      const selection = { anchor: Math.min(main.anchor, text.length) };
      const annotations = [Transaction.remote.of(true), Transaction.addToHistory.of(false)];
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection, annotations });
    },

    /** Underline what is wrong. */
    mark(problems) {
      const { doc } = view.state;
      const found = problems
        .filter((problem) => problem.line !== null && problem.line <= doc.lines)
        .map((problem) => {
          const line = doc.line(problem.line);
          const start = Math.min(line.from + (problem.column ?? 1) - 1, line.to);
          const from = start === line.to && start > line.from ? start - 1 : start;
          const to = problem.column === null ? line.to : Math.min(from + problem.width, line.to);
          const message = problem.message + (problem.hint ? ` (${problem.hint})` : "");
          return { from, to: Math.max(to, from), severity: "error", message };
        });
      view.dispatch(setDiagnostics(view.state, found));
    },

    /** Go to a place. */
    goto(line, column) {
      const found = view.state.doc.line(Math.min(line, view.state.doc.lines));
      const anchor = Math.min(found.from + (column ?? 1) - 1, found.to);
      view.dispatch({ selection: { anchor }, scrollIntoView: true });
      view.focus();
    },
  };
}

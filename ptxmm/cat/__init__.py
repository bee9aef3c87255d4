"""The model language: a subset of herd's cat, with one evaluator over either carrier of the relation algebra."""

from ptxmm.cat.ir import Axiom, Model, Node
from ptxmm.cat.load import disjunctions_of, left_out_of, load, parse_model, text_of, texts_of
from ptxmm.cat.shipped import index, specification, split_specification

__all__ = [
    "Axiom",
    "Model",
    "Node",
    "disjunctions_of",
    "index",
    "left_out_of",
    "load",
    "parse_model",
    "specification",
    "split_specification",
    "text_of",
    "texts_of",
]

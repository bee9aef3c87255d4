"""Why a state is allowed (an execution) or not (an axiom and the edges that break it), and the nearest miss."""

from ptxmm.analysis.explain.analysis import ExplainResult, explain

__all__ = ["ExplainResult", "explain"]

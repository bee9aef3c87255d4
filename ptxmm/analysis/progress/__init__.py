"""Can some thread spin or wait for ever?"""

from ptxmm.analysis.progress.analysis import ProgressResult, progress

__all__ = ["ProgressResult", "progress"]

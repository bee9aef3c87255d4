"""Can some thread spin or wait for ever?"""

from ptxmm.analysis.progress.analysis import progress
from ptxmm.analysis.progress.result import ProgressResult

__all__ = ["ProgressResult", "progress"]

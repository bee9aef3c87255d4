"""``python -m ptxmm``."""

if __name__ == "__main__":
    import _signal as signal  # type: ignore[import-not-found]

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until what is imported next has its own handler

    from ptxmm.cli import main

    main()

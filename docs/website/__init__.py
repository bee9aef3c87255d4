"""What the pages of the site need to be built: links from sections of the PTX ISA, and colours for litmus tests."""

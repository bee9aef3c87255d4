"""The playground: one page and the questions that it asks. Who serves it gives the processes that answer them."""

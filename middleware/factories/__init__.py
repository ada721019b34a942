"""From options to middleware. Imports LangChain: only workers come here, through `catalogue.Entry.build`."""

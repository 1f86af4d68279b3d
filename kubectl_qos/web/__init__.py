"""The terminal UI in a browser, a process for each page. Only this room knows aiohttp and textual-serve."""

"""The terminal UI in a browser, with a process for each page. Only this folder imports aiohttp."""

"""The terminal UI in a browser, a process for each page. Only this folder imports aiohttp."""

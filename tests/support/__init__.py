"""What the end-to-end tests share: child processes, proxies, a client, broken providers, counted sockets."""

"""The HTTP server of a broker, as a process of its own."""

from lowwater.http.serving import main

main()

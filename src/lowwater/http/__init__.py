"""Groups, topics and a broker's health over HTTP: a JSON API, metrics, and the dashboard that is built on it."""

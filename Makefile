PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)

.PHONY: peers

peers:
	$(PYTHON) peers/bring.py

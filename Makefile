# `make run` and `make test` are all one needs; each sets up what it uses.
VENV   := .venv
PYTHON ?= python3
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
WORKERS ?= 3
# Tests start hundreds of Python processes: each would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

# With the oldest Kafka: it does not know the newer groups, writes the ends of transactions when it has time, and finds
# its place in ZooKeeper taken for a while after a kill.
OLD_SUITES = tests/reader -k "not consumer_protocol and not with_transactions and not open_transaction and not truncated"

.PHONY: run first-steps test oracle check bench peers docs mutants clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade -c constraints.txt pip
	$(PY) -m pip install --quiet -c constraints.txt -e '.[spark]' --group dev
	$(PY) -c 'import lowwater.spark.java as java; java.find_java()' 2> /dev/null || $(PY) -m pip install --quiet -c constraints.txt -e '.[java]'
	touch $(READY)

run: $(READY)          ## a broker, a sample of orders, a pipeline on Spark over it, and a check; again: another day
	$(PY) -m examples.orders

first-steps: $(READY)  ## a broker, a day of orders, reading back by time and as a group
	$(PY) -m examples.first_steps

# Many tests wait for timeouts, disks and JVMs, so that three workers keep two cores busy; one of them begins with Spark.
test: $(READY)         ## all tests; those against Apache Kafka run when it can be had
	$(PY) peers/bring.py --if-possible
	$(PY) -m pytest -n $(WORKERS) --dist loadscope $(ARGS)

oracle: $(READY)       ## the behaviour suites once more, against Apache Kafka itself
	$(PY) peers/bring.py --old
	$(PY) -m pytest tests/conformance tests/reader tests/integration/http --against=kafka $(ARGS)
	$(if $(ARGS),,$(PY) -m pytest $(OLD_SUITES) --against=kafka-2.8)
	$(if $(ARGS),,$(PY) -m pytest tests/spark/connector tests/spark/test_option_matrix.py --against=kafka)

check: $(READY)        ## style, types, layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(READY)        ## figures against peers measured in the same run
	$(PY) peers/bring.py
	$(PY) -m pip install --quiet -c constraints.txt --group bench
	$(PY) -m bench $(ARGS)

peers: $(READY)        ## Apache Kafka, Kafka Streams, Spark's Kafka connector, kafkajs and kcat for tests and bench
	$(PY) peers/bring.py

docs: $(READY)         ## write the generated pages again
	$(PY) -m lowwater.config.reference > docs/configuration.md
	$(PY) -m lowwater.cli.reference > docs/cli.md
	$(PY) -m lowwater.client.reference > docs/client-settings.md
	$(PY) -m lowwater.spark.reference > docs/spark-options.md
	$(PY) -m lowwater.spark.pipeline.reference > docs/pipeline-keys.md

mutants: $(READY)      ## break one rule at a time; the tests must notice
	$(PY) -m tests.crash.mutants $(ARGS)

clean:
	rm -rf $(VENV) run .peers .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

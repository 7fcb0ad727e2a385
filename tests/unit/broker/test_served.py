import pkgutil

import lowwater.broker.handlers
from lowwater.broker.router import HANDLERS, SERVED_APIS, advertised_versions, handler_of


def test_every_served_api_has_a_handler_and_every_handler_is_served():
    files = {module.name for module in pkgutil.iter_modules(lowwater.broker.handlers.__path__)}
    for api in SERVED_APIS.values():
        handler_of(api)
    assert set(HANDLERS) == set(SERVED_APIS)
    assert len(files) == len(SERVED_APIS)


def test_produce_is_advertised_from_version_zero_for_the_sake_of_older_clients():
    assert next(advertised_versions())[:2] == (0, 0)

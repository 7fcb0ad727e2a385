from lowwater.errors import ApiError, ErrorCode


def test_every_code_has_words_of_its_own() -> None:
    texts = [code.text for code in ErrorCode]
    assert all(texts)
    assert len(set(texts)) == len(texts)


def test_a_code_is_its_number() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == 3


def test_an_api_error_says_its_code_and_why() -> None:
    assert str(ApiError(ErrorCode.INVALID_REQUEST, "twice")) == "INVALID_REQUEST: twice"
    assert str(ApiError(ErrorCode.INVALID_REQUEST)) == "INVALID_REQUEST"

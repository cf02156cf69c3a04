from dialeval.models.tagger import UNUSED


def test_only_what_tags_need_is_loaded(tagger):
    assert not set(UNUSED) & set(tagger._pipeline.pipe_names)


def test_auxiliaries_and_verbs_with_particles_are_known_without_a_parser(tagger):
    (words,) = tagger.tag_texts(["I have been trying to pick him up; you can sleep."])
    assert [word.text for word in words if word.auxiliary] == ["have", "been", "can"]
    assert [word.text for word in words if word.particle] == ["pick"]

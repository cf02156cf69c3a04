"""Words that no topic is made of: English words of the closed classes, and their contractions.

WordNet holds only nouns, verbs, adjectives and adverbs, and so it takes `in` for indium, `he` for
helium and `it` for a business. Whoever asks it for a part of speech leaves these out first.
"""

_WORDS = """
a an the this that these those some any no none each every either neither both all half such
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
himself she her hers herself it its itself they them their theirs themselves one ones oneself
who whom whose which what whatever whichever whoever someone somebody something anyone anybody
anything everyone everybody everything nobody nothing other others another
and or but nor so yet for if unless until till while whereas because since although though
whether than as lest once
about above across after against along amid among around at before behind below beneath beside
besides between beyond by despite down during except from in inside into like near of off on
onto out outside over past per through throughout to toward towards under underneath up upon
via with within without
be am is are was were been being have has had having do does did done doing
can could may might must shall should will would ought need dare cannot
not n't 's 'm 'd 're 've 'll ca wo ai gonna gotta wanna
here there where when why how then now thus hence ever never always just only also too very
quite rather almost even still already again away back else maybe perhaps really however
yes yeah yep nope ok okay oh ah uh um hmm hey hi hello bye please well wow ha haha
much many more most few fewer less least several enough own same
mr mrs ms dr st etc
"""

FUNCTION_WORDS = frozenset(_WORDS.split())

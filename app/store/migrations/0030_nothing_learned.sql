-- Tools are found by the classifier, the index and search_tools; what was learned from calls is not used.
DROP TABLE learned_stems;
DROP TABLE learned_phrases;

"""Research beside the main path, which nothing else imports: the command line finds its functions by their places."""

COMMANDS = {
    "contradict": "sparse_adapt.research.commands:write_contradictions",
    "coin": "sparse_adapt.research.commands:coin",
    "recovery": "sparse_adapt.research.commands:recovery",
    "groups": "sparse_adapt.research.commands:groups",
    "similarity": "sparse_adapt.research.commands:similarity",
    "relevant-words": "sparse_adapt.research.commands:relevant_words",
}
SUITE = "sparse_adapt.research.commands:suite"  # of evaluate --suite
SUITE_FILE = "sparse_adapt.research.commands:suite_file"  # of evaluate --template

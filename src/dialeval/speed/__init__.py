"""How fast is this machine, and how does dialeval compare with other packages on it?"""

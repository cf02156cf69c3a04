"""Does a metric agree with people?"""

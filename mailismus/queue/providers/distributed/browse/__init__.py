"""How the projection is read: listings, counts, flushes, and the slices that nothing lives in any more.

Modules:

    partition   what lives in a partition, a page at a time
    starts      from which slice on each area is read; what is before is removed in the end
    overlay     entries as the hand knows them. Pure
    search      pages of a search, newest first
    counting    counts of all areas
    sizes       how much is in the whole queue, for metrics
    recounting  counts that may be wrong are made anew
    hurry       what waits is made due: flushes, and clocks that were set back
    forgotten   new mail that nothing brings back
    carrying    what waits for long is moved into the present slice
    refilling   queues of the broker that were lost are filled again from the rows
"""

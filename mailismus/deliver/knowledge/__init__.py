"""What is known of receivers: defects, blame, what they did lately, and the records that outlive a process.

Modules, leaves first:

    in_use         bounded records, of which those in use are kept. Pure
    blame          what a failure says about recipient, message, host or MX set. Pure
    quirks         known defects of each host. Pure
    host_records   what is known of a host, to be kept or shared. Pure
    host_snapshot  keeps the records of hosts from one run to the next
    host_sharing   shares deaths of hosts among the servers of a queue
    hop_habits     what one next hop did lately. Pure
    recent         totals and habits of each next hop, and the last failures. Pure
    habits         what receivers did lately, hosts too. Pure
"""

-- $1 and $2 as in head.sql. Waits for a commit that is being made without the lock; another record is the newest then.
select 0 from bolide_kv where part = {part} and k >= $1 and k < $2 order by k desc limit 1 for no key update

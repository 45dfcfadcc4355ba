-- $1 and $2 as in head.sql. The newest commit record, locked: no commit follows it until the transaction ends, except in the same transaction.
-- Another one may be the newest when the lock is given.
select 0, k, v from bolide_kv where part = {part} and k >= $1 and k < $2 order by k desc limit 1 for no key update

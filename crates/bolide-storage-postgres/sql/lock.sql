-- $1 and $2 as in head.sql. Waits until nobody else has locked the newest commit record; another one may be the newest then.
select 0 from bolide_kv where part = {part} and k >= $1 and k < $2 order by k desc limit 1 for no key update

-- $1 first key, $2 end, $3 maximum number of rows, $4 limit on the bytes before a row, $5 and $6 as in head.sql. Rows upwards, and the head.
-- One row more than the limit admits tells that there are more; it comes without its value.
select 1, k, case when coalesce(before, 0) < $4::bigint then v else '' end from (
  select k, v, before, lag(before, 1, 0) over (order by k) as before_that
  from (
    select k, v, sum(octet_length(k) - 5 + octet_length(v))
      over (order by k rows between unbounded preceding and 1 preceding) as before
    from (select k, v from bolide_kv where part = {part} and k >= $1 and k < $2 order by k limit $3) rows
  ) summed
) found where coalesce(before_that, 0) < $4::bigint
union all
(select 0, k, v from bolide_kv where part = {part} and k >= $5 and k < $6 order by k desc limit 1)

-- One row per logged call. `body` is the whole entry where the person shares entries.
create table supervisor.entry (
    team text not null,
    person text not null,
    id text not null,
    session text not null,
    at timestamptz not null,
    tool text not null,
    status text not null,
    duration_ms bigint not null,
    cost_usd double precision not null,
    body jsonb,
    primary key (team, person, id)
);
create index entry_by_time on supervisor.entry (team, at);

create table supervisor.attempt (
    team text not null,
    person text not null,
    entry text not null,
    n integer not null,
    at timestamptz not null,
    model text not null,
    tier text not null,
    cause text not null,
    verified boolean not null,
    tokens_in bigint,
    tokens_out bigint,
    cost_usd double precision,
    duration_ms bigint not null,
    primary key (team, person, entry, n)
);
create index attempt_by_model on supervisor.attempt (team, model, at);

-- What may be spent in a day (UTC): of one person, or with person = '' of the whole team. No row: no cap.
create table supervisor.cap (
    team text not null,
    person text not null default '',
    day_usd numeric(14, 6) not null,
    primary key (team, person)
);

-- One row per question that costs something: reserved until it is settled or `expires`.
create table supervisor.spend (
    id text primary key,
    team text not null,
    person text not null,
    day date not null,
    usd numeric(14, 6) not null,
    expires timestamptz not null,
    settled boolean not null default false
);
create index spend_open on supervisor.spend (team, day) where not settled;
create index spend_by_day on supervisor.spend (day);

-- The settled rows of a day, added up.
create table supervisor.spent (
    team text not null,
    person text not null,
    day date not null,
    usd numeric(14, 6) not null,
    primary key (team, person, day)
);

create function supervisor.today() returns date language sql stable as
$$ select (now() at time zone 'utc')::date $$;

-- Reserves, and returns '' or whose cap is used up: 'person' or 'team'. Calls of one team wait for each other, for the
-- length of this transaction.
create function supervisor.reserve(of_team text, of_person text, with_id text, amount double precision, lease_s double precision)
returns text language plpgsql as $$
declare
    today date := supervisor.today();
    whose text;
begin
    perform pg_advisory_xact_lock(hashtextextended('supervisor.reserve ' || of_team, 0));
    delete from supervisor.spend where day < today - 7;
    select case when c.person = '' then 'team' else 'person' end into whose
    from supervisor.cap c
    where c.team = of_team and c.person in ('', of_person)
      and c.day_usd < amount::numeric(14, 6)
        + coalesce((select sum(s.usd) from supervisor.spent s
                    where s.team = of_team and s.day = today and c.person in ('', s.person)), 0)
        + coalesce((select sum(o.usd) from supervisor.spend o
                    where o.team = of_team and o.day = today and not o.settled
                      and o.expires > clock_timestamp() and c.person in ('', o.person)), 0)
    order by c.person desc
    limit 1;
    if whose is not null then
        return whose;
    end if;
    insert into supervisor.spend (id, team, person, day, usd, expires)
    values (with_id, of_team, of_person, today, amount::numeric(14, 6), clock_timestamp() + make_interval(secs => lease_s))
    on conflict (id) do nothing;
    return '';
end $$;

-- Charges what was used, once: a second time with the same id does nothing.
create function supervisor.settle(of_team text, of_person text, with_id text, amount double precision)
returns void language plpgsql as $$
declare
    on_day date;
begin
    insert into supervisor.spend (id, team, person, day, usd, expires, settled)
    values (with_id, of_team, of_person, supervisor.today(), amount::numeric(14, 6), clock_timestamp(), true)
    on conflict (id) do update set usd = excluded.usd, settled = true where not spend.settled
    returning day into on_day;
    if on_day is not null then
        insert into supervisor.spent (team, person, day, usd)
        values (of_team, of_person, on_day, amount::numeric(14, 6))
        on conflict (team, person, day) do update set usd = spent.usd + excluded.usd;
    end if;
end $$;

-- For people: what the models of a team did, and what was spent.
create view supervisor.models as
select team, model, count(*) as attempts, count(*) filter (where cause = 'accepted') as accepted,
       coalesce(sum(cost_usd), 0) as cost_usd, sum(duration_ms) / 1000.0 as seconds
from supervisor.attempt group by team, model;

create view supervisor.days as
select team, person, (at at time zone 'utc')::date as day, count(*) as calls,
       count(*) filter (where status = 'pass') as passed, sum(cost_usd) as cost_usd
from supervisor.entry group by team, person, day;

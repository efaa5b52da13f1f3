-- A TypeID: the prefix and a UUIDv7 in base32. Node makes the same ids with `typeid-js`; this one serves statements that make
-- many rows at once. Bytes 6 and 8 of a random UUID hold its version and variant, so they lend only their random bits.
create or replace function core.new_id(prefix text) returns text
language plpgsql volatile parallel safe
as $$
declare
  alphabet constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  random constant bytea := uuid_send(gen_random_uuid());
  milliseconds constant bigint := (extract(epoch from clock_timestamp()) * 1000)::bigint;
  result text := prefix || '_';
begin
  for digit in reverse 9..0 loop
    result := result || substr(alphabet, ((milliseconds >> (5 * digit)) & 31)::int + 1, 1);
  end loop;
  -- 0111x: version 7, and a random bit.
  result := result || substr('ef', (get_byte(random, 6) & 1) + 1, 1);
  for position in 0..1 loop
    result := result || substr(alphabet, (get_byte(random, position) & 31) + 1, 1);
  end loop;
  -- x10xx: the variant between random bits.
  result := result || substr(alphabet, ((get_byte(random, 8) & 19) | 8) + 1, 1);
  for position in 0..11 loop
    result := result || substr(alphabet, (get_byte(random, case when position < 4 then position + 2 when position = 4 then 7 else position + 4 end) & 31) + 1, 1);
  end loop;
  return result;
end
$$;

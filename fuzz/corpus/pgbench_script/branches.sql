\set x 1 + 2 * -3 / case when :a > 5 then 2 else null end
\if :x >= 3 and not (:y is null) or :z isnull
  SELECT 1 \; SELECT 2 \aset
  \sleep 10 ms
\elif greatest(1, 2.5e3, :x) <> 0x1f % 7
  \startpipeline
  SELECT :x;
  \syncpipeline
  \endpipeline
\else
  \set h hash_fnv1a(:x, 7) & 255 | 3 # 9 << 2 >> 1
  \set r random_zipfian(1, 1000, 1.5) + random_gaussian(1, 10, 2.5) + permute(1, 10, 4)
\endif
-- a comment
SELECT '\;' , :h;

\set x 1 + 2 * 3
\set x -(7) / 2
\set x 7 / -2
\set x 7 % 3
\set x -7 % 3
\set x 7 % -3
\set x 5.5 % 2
\set x 7.0 / 2
\set x 1 / 3.0
\set x 2 + 2.5
\set x 10 - 3 - 2
\set x 2 * (3 + 4)
\set x 100 / 7 / 2
\set x -9223372036854775808
\set x 9223372036854775807
\set x -9223372036854775807 - 1
\set x 1e3
\set x .5
\set x 1.5e-5
\set x 5e300 * 5e300
\set x -1.0 / 0
\set x 0.0 / 0.0
\set x 1 / 0.0
\set x int(2.5)
\set x int(3.5)
\set x int(-2.5)
\set x int(1e3)
\set x int(0.49999999999999994)
\set x int(-0.5)
\set x double(5)
\set x double(5) / 2
\set x abs(-17)
\set x abs(-17.5)
\set x abs(0)
\set x sqrt(2.0)
\set x sqrt(16)
\set x sqrt(-1)
\set x ln(10)
\set x ln(exp(1))
\set x exp(1)
\set x exp(1000)
\set x pi()
\set x pow(2, 10)
\set x power(2, 0.5)
\set x pow(2, -1)
\set x pow(0, 0)
\set x pow(-8, 3)
\set x mod(54, 32)
\set x mod(-54, 32)
\set x mod(5.5, 2)
\set x greatest(1, 5, 3)
\set x greatest(5)
\set x least(5, 3, 4)
\set x greatest(1, 2.5, -3)
\set x least(1, 2.5, -3)
\set x least(1, 1.0)
\set x greatest(null, 2)
\set x 1 & 3
\set x 5 | 2
\set x 5 # 1
\set x ~ 5
\set x ~ 5 | 3
\set x ~ 5 + 1
\set x 1 << 4
\set x -16 >> 2
\set x 1 << 64
\set x 1 << 63
\set x 1 >> -1
\set x 1 | 2 + 4
\set x 1 < 2
\set x 2 <= 2
\set x 3 > 4
\set x 4 >= 4
\set x 1 = 1.0
\set x 1 <> 2
\set x 1 != 1
\set x 1 < 2.5
\set x not true
\set x not not true
\set x not 1 = 2
\set x true and false
\set x true or false
\set x true and null
\set x null and true
\set x null or true
\set x false and null
\set x true or null
\set x false or null
\set x null is null
\set x 1 is null
\set x 1 isnull
\set x null notnull
\set x 1 is not null
\set x true is true
\set x true is false
\set x 1 is true
\set x false is not true
\set x null + 1
\set x null = null
\set x - null
\set x abs(null)
\set x not null
\set x 1 + 2 = 3 and 4 > 3
\set x 1 = 2 or 3 = 3 and false
\set x case when 1 = 1 then 5 else 6 end
\set x case when false then 5 end
\set x case when null then 5 else 7 end
\set x case when 0 then 1 when 0.0 then 2 when 3 then 3 end
\set x case when 2 > 1 then 'x' end
\set x case when true then 1.5 else 2 end
\set x hash(10, 5432)
\set x hash(10)
\set x hash_fnv1a(10, 5432)
\set x hash_fnv1a(-1, 0)
\set x hash_murmur2(10, 5432)
\set x hash_murmur2(-1, 0)
\set x hash_murmur2(9223372036854775807, -1)
\set x hash(null)
\set x permute(0, 2, 5431)
\set x permute(1, 2, 5431)

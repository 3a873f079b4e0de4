SELECT * FROM t WHERE id = :id AND b=:b_2::text AND c = ':no' -- :no
 AND a[1:2] = x := 1;
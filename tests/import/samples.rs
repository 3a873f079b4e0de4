//! Small files in the forms that `rqps import` reads, made up for tests.

pub(crate) const QPS_ABS: &str = "\
col-1 : x.my5651_rel.z12a_c8r32.pk1
col-2 : x.my8044_rel.z12a_c8r32.pk1
col-3 : x.mo425.c7.pk1

col-1\tcol-2\tcol-3
4000\t3000\t1000\thot-points_range=100
20000\t13000\tinnodb\tpoint-query_range=100
250\t300\t0\tread-only_range=10000
6500\t4500\t7\tscan_range=100
6400\t4600\t7\tscan.warm_range=100
14000\t8400\t12\tdelete_range=100\t-> 8.0.44, col2
";

pub(crate) const QPS_REL: &str = "\
Relative to: x.my5651_rel.z12a_c8r32.pk1
col-1 : x.my8044_rel.z12a_c8r32.pk1
col-2 : x.mo425.c7.pk1

col-1\tcol-2
0.75\t0.25\thot-points_range=100
0.65\t0.00\tpoint-query_range=100
1.20\t0.00\tread-only_range=10000
0.69\t0.00\tscan_range=100
0.72\t0.00\tscan.warm_range=100
0.60\t0.00\tdelete_range=100
";

pub(crate) const MET: &str = "\
sb.prepare.met.point-query.warm.range100.pk1
--- absolute
cpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms
0.000097\t0.010\t0\t0.001\t1.236\t129870\tx.my5651_rel.z12a_c8r32.pk1
0.000150\t0.046\t0\t0\t1.169\t88028\tx.my8044_rel.z12a_c8r32.pk1
--- relative to first result
1.55\t\t4.60\t1\t0.00\t0.95\t0.68\tx.my8044_rel.z12a_c8r32.pk1

sb.met.hot-points.range100.pk1.dop1
--- absolute
cpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms
0.002000\t3.900\t0\t0\t0.006\t4000\tx.my5651_rel.z12a_c8r32.pk1
0.002500\t4.000\t0\t0.5\t0.012\t3000\tx.my8044_rel.z12a_c8r32.pk1
--- relative to first result
1.25\t\t1.03\t1\tinf\t2.00\t0.75\tx.my8044_rel.z12a_c8r32.pk1
";

pub(crate) const BLOCKS: &str = "\
sb.prepare.o.point-query.warm.range100.pk1
83333\tx.pg1110.x5.pk1
90090\tx.pg131.x5.pk1

sb.r.qps.point-query.pre.range100.pk1
23662\t47107\tx.pg1110.x5.pk1
24750\t49086\tx.pg131.x5.pk1
";

pub(crate) const BLOCK_RATIOS: &str = "\
sb.prepare.o.point-query.warm.range100.pk1
1.08\tx.pg131.x5.pk1

sb.r.qps.point-query.pre.range100.pk1
1.05\t1.04\tx.pg131.x5.pk1
";

pub(crate) const SB_O: &str = "\
/opt/sysbench --db-driver=pgsql --tables=8 --table-size=1000000 --threads=4 --time=10 \
/s/oltp_point_select.lua run --pgsql-user=me --pgsql-password=secret
4 CPUs
sysbench 1.1.0-3ceba0b (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Warmup time: 5s
Initializing random number generator from current time


Initializing worker threads...

Threads started!

[ 1s ] thds: 4 tps: 990.00 qps: 990.00 (r/w/o: 990.00/0.00/0.00) lat (ms,95%): 4.10 err/s: 0.00
[ 2s ] thds: 4 tps: 1010.00 qps: 1010.00 (r/w/o: 1010.00/0.00/0.00) lat (ms,95%): 4.10 err/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       3.911 |************************                 6000
       4.128 |****************************************  4000

SQL statistics:
    queries performed:
        read:                            10000
        write:                           0
        other:                           0
        total:                           10000
    transactions:                        10000  (1000.00 per sec.)
    queries:                             10000  (1000.00 per sec.)
    ignored errors:                      2      (0.20 per sec.)
    reconnects:                          0      (0.00 per sec.)

Throughput:
    events/s (eps):                      1000.0000
    time elapsed:                        10.0000s
    total number of events:              10000

Latency (ms):
         min:                                    3.29
         avg:                                    4.00
         max:                                   11.26
         95th percentile:                        4.10
         sum:                                40000.00

Threads fairness:
    events (avg/stddev):           2500.0000/10.00
    execution time (avg/stddev):   10.0000/0.00

";

/// The banner comes twice; the first sample is that since boot.
pub(crate) const SB_VM: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 4  0      0 106205    533 118420    0    0    31    40    0    0 16 10 72  2  0
41  0      0 105495    533 118420    0    0    24   319 1150 4000 30 10 60  0  0
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
41  0      0 105066    533 118420    0    0     0   500 1041 6000 34 10 56  0  0
";

pub(crate) const SB_IO: &str = "\
Linux 5.15.0-119-generic (host) \t03/05/2025 \t_x86_64_\t(4 CPU)


avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          25.70    0.00   52.29    0.00    0.00   22.01

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s  %util
loop0            0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00   0.00
md2            100.00    400.00     0.00   0.00    0.10     4.00   50.00    200.00   0.80


avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          27.96    0.00   53.02    0.00    0.00   19.02

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s  %util
loop0            0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00   0.00
md2            300.00   1200.00     0.00   0.00    0.10     4.00   70.00    280.00   0.80

";

/// What the published script makes of the three above: cs (0 + 4000 + 6000) / 4, us + sy
/// (26 + 40 + 44) / 4.
pub(crate) const SB_MET: &str = "\
iostat, vmstat normalized by operation rate
samp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s
2\t200.0\t0.8\t60.0\t0.2\t0.200\t0.800\t0.240\t1000.00

samp\tcs/s\tcpu/s\tcs/o\tcpu/o
4\t2500\t27.5\t2.500\t0.027500
";

pub(crate) const O_SUM: &str = "\
ips\tqps\trps\trmbps\twps\twmbps\trpq\trkbpq\twpi\twkbpi\tcsps\tcpups\tcspq\tcpupq\tdbgb1\tdbgb2\trss\tmaxop\tp50\tp99\ttag
100000\t0\t50.4\t0.2\t100.0\t40.0\t0.001\t0.002\t0.001\t0.410\t12000\t40.0\t0.120\t16\t1.9\t5.2\t2.0\t0.010\t101000\t80000\t20m.pg1.c5
200000\t0\t0.0\t0.0\t60.0\t60.0\t0.000\t0.000\t0.000\t0.307\t2000\t25.0\t0.010\t5\t3.7\t8.6\t2.1\t0.002\tNA\tNA\t20m.pg1.c5
40000\t0\t0.0\t0.0\t200.0\t70.0\t0.000\t0.000\t0.005\t1.792\t10000\t35.0\t0.250\t35\t8.3\t20.3\t3.0\t0.030\t40500\t27000\t20m.pg1.c5
100\t7000\t0.0\t0.0\t200.0\t5.0\t0.000\t0.000\t2.000\t51.200\t28000\t28.0\t4.000\t160\t8.3\t17.7\t3.0\t0.004\t7100\t6900\t20m.pg1.c5
500\t7000\t0.0\t0.0\t300.0\t10.0\t0.000\t0.000\t0.600\t20.480\t28000\t28.0\t4.000\t160\t8.5\t11.6\t3.0\t0.003\t7100\t6900\t20m.pg1.c5
900\t7000\t0.0\t0.0\t400.0\t18.0\t0.000\t0.000\t0.444\t20.480\t28000\t28.7\t4.000\t164\t9.0\t12.0\t3.0\t0.005\t7100\t6900\t20m.pg1.c5
";

pub(crate) const MRG: &str = "\
ips\tqps\trps\trmbps\twps\twmbps\trpq\trkbpq\twpi\twkbpi\tcsps\tcpups\tcspq\tcpupq\tdbgb1\tdbgb2\trss\tmaxop\tp50\tp99\ttag
100000\t0\t50\t0.2\t100.0\t40.0\t0.001\t0.002\t0.001\t0.410\t12000\t40.0\t0.120\t16\t1.9\t5.2\t2.0\t0.010\t101000\t80000\tpg1.c5
80000\t0\t0\t0.0\t100.0\t40.0\t0.000\t0.000\t0.001\t0.512\t12000\t40.0\t0.150\t20\t1.9\t5.2\t0.0\t0.020\t81000\tNA\tpg2.c5
";

pub(crate) const REL: &str = "\
ips\tqps\trps\trmbps\twps\twmbps\trpq\trkbpq\twpi\twkbpi\tcsps\tcpups\tcspq\tcpupq\tdbgb1\tdbgb2\trss\tmaxop\tp50\tp99\ttag
0.80\t1\t0.00\t0.00\t1.00\t1.00\t0.00\t0.00\t1.00\t1.25\t1.00\t1.00\t1.25\t1.25\t1.00\t1.00\t0.00\t2.00\t0.80\tNA\tpg2.c5
";

pub(crate) const HISTOGRAMS: &str = "\
report\tstep\top\t256us\t1ms\t4ms\t16ms\t64ms\t256ms\t1s\t4s\t16s\tgt\tmax\ttag
20m.pg\tl.i0\tinsert\t0.000\t98.919\t1.081\tnonzero\t0.000\t0.000\t0.000\t0.000\t0.000\t0.000\t0.010\tpg1.c5
20m.pg\tq100.1\tinsert\t0.000\t0.000\t100.000\t0.000\t0.000\t0.000\t0.000\t0.000\t0.000\t0.000\t0.021\tpg1.c5
";

pub(crate) const SUMMARY: &str = "\
# classes as published
abs:20m.pg\tl.i0\tq900.1
pg1.c5\t100000:g\t7000:-
pg2.c5\t60000:r\t6900:-
rel:20m.pg\tl.i0
pg1.c5\t1.00:-
pg2.c5\t0.60:y
";

pub(crate) const DBB_SUM: &str = "\
bm.lc.nt8.d0/9.8/report.tsv
bm.lc.nt8.d0/10.3/report.tsv

ops_sec\tmb_sec\tlsm_sz\tblob_sz\tc_wgb\tw_amp\tc_mbps\tc_wsecs\tc_csecs\tb_rgb\tb_wgb\tusec_op\tp50\tp99\tp99.9\tp99.99\tpmax\tuptime\tstall%\tNstall\tu_cpu\ts_cpu\trss\ttest\tdate\tversion\tjob_id\tgithash
1000000\t400.5\t20GB\t0GB\t19.9\t2.0\t449.8\t69\t60\t0\t0\t0.9\t0.5\t1\t4\t14\t5824\t45\t0.0\t\t0.1\t0.0\tNA\tfillseq.wal_disabled.v400\t2025-05-9T01:44:24\t9.8.4\t\t4b2122578e
1100000\t440.5\t2TB\t0GB\t19.9\t2.0\t458.8\t177\t4176\t7039\t0\t0.9\t0.5\t1\t4\t15\t6017\t44\t0.0\t\t0.1\t0.0\t1.5\tfillseq.wal_disabled.v400\t2025-05-1T00:54:23\t10.3.4\t\t4b2122578f

ops_sec\tmb_sec\tlsm_sz\tblob_sz\tc_wgb\tw_amp\tc_mbps\tc_wsecs\tc_csecs\tb_rgb\tb_wgb\tusec_op\tp50\tp99\tp99.9\tp99.99\tpmax\tuptime\tstall%\tNstall\tu_cpu\ts_cpu\trss\ttest\tdate\tversion\tjob_id\tgithash
200000\t80.0\t23GB\t0GB\t1373.6\t10.3\t765.1\t6365\t4076\t0\t0\t115.5\t36.8\t2700\t5874\t13525\t951550\t1838\t55.4\t27\t9.2\t9.3\tNA\toverwriteandwait.t24.s0\t2025-05-9T03:21:02\t9.8.4\t\t4b2122578e
failed\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\toverwriteandwait.t24.s0\t2025-05-1T02:31:01\t10.3.4\t\t4b2122578f
";

pub(crate) const DBB_RATES: &str = "\
1000\t1100\t900\tfillseq.wal_disabled.v400
500\t450\t505\treadrandom.t8
";

pub(crate) const DBB_RATIOS: &str = "\
fillseq.wal_disabled.v400,1.00,1.10,0.90
readrandom.t8,1.00,0.90,1.01
";

pub(crate) const DBB_LOG: &str = "\
/x/db_bench --benchmarks=overwrite,stats --threads=2
Date:       Thu Nov 20 14:00:00 2025
RocksDB:    version 7.8.3
overwrite    :       2.345 micros/op 426439 ops/sec 10.000 seconds 4264390 operations;  170.8 MB/s
Count: 4264390 Average: 2.3450  StdDev: 3.10
Min: 1  Median: 2.1000  Max: 5824
Percentiles: P50: 2.10 P75: 2.60 P99: 5.87 P99.9: 8.10 P99.99: 14.00
Level    Files   Size     Score Read(GB)  Write(GB) Comp(sec) CompMergeCPU(sec)
 Sum      9/1   1.24 GB   0.0      0.2     1.5      9.21       8.50
Uptime(secs): 10.1 total, 10.1 interval
Flush(GB): cumulative 0.511, interval 0.511
Cumulative compaction: 1.50 GB write, 150.1 MB/s write, 0.20 GB read, 20.0 MB/s read, 9.2 seconds
Cumulative writes: 4264K writes, 4264K keys, 4M commit groups, 1.0 w/g, ingest: 1.50 GB, 150 MB/s
Cumulative stall: 00:00:2.500 H:M:S, 24.8 percent
Stalls(count): 3 level0_slowdown, 1 level0_slowdown_with_compaction, 0 level0_numfiles
";

pub(crate) const PLOT: &str = "\
writing output to results/x.png
Computing knn metrics
 PGVector(m=16, ef_construction=64, ef_search=20)        0.990     2337.010
Computing knn metrics
 PGVector(m=16, ef_construction=64, ef_search=10)        0.961     3043.700
 MariaDB(m= 8, ef_search=10)        0.991     5351.400
 MariaDB(m=12, ef_search=10)        0.995     4744.975
";

pub(crate) const BUILDS: &str = "\
Legend:
* M - value for M when creating the index

pgvector
M\tcons\tsecs\tsize (MB)
16\t 64\t 61.7\t234

MariaDB
M\tNA\tsecs\tsize (MB)
 8\t\t 18.1\t132
12\t\t 27.4\t132
";

/// The row of MariaDB missed the point with the padded M, and its seconds are another's.
pub(crate) const SELECTED: &str = "\
Best QPS with recall >= 0.99
0.990 2337.0 61.7     PGVector(m=16, ef_construction=64, ef_search=20)
0.995 4745.0 18.1     MariaDB(m=12, ef_search=10)
";

pub(crate) const ANN_LOG: &str = "\
2025-01-11 13:35:02,811 - annb - INFO - running only mariadb
Trying to instantiate ann_benchmarks.algorithms.mariadb.MariaDB(['euclidean', {'M': 12}])
Got a train set of size (60000 * 784)
Insert time for 47_040_000 records:    5.41
Size is 132 MB
Built index in 27.438745260238647
Index size:  135168.0
";

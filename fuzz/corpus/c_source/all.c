/* Licence */
#include <a//b.h> // c
#define X /* one
line */ 1'000
char *a = R"x(" /* a */ )" )x" "\"//" 'b' u'/'; // d \
e
#error don't
int f(void) { return 1 / 2 /* of
two lines */ ; }

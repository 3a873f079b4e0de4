/*M!999999\- enable the sandbox mode */
-- MySQL dump
/*!40101 SET NAMES utf8mb4 */;
# a comment
DROP TABLE IF EXISTS `t``x`;
CREATE TABLE `t` (`id` int, `c` varchar(10) DEFAULT 'a\'b;c');
INSERT INTO `t` VALUES (1,'x--y'),(2,"a""b");
DELIMITER //
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER t1 BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; END */ //
DELIMITER ;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '';
USE `other`;
CREATE DEFINER=CURRENT_USER() VIEW v AS SELECT 1;

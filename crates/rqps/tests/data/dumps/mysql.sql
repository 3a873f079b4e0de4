/*M!999999\- enable the sandbox mode */
-- MySQL dump 10.13  Distrib 8.0.33, for Linux (x86_64)
--
-- Host: localhost    Database: shop
-- ------------------------------------------------------

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!50503 SET NAMES utf8mb4 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;
SET @@SESSION.SQL_LOG_BIN= 0;

--
-- GTID state at the beginning of the backup
--

SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';

--
-- Table structure for table `item`
--

DROP TABLE IF EXISTS `item`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `item` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `name` varchar(40) DEFAULT NULL,
  `raw` blob,
  `twice` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `item` WRITE;
/*!40000 ALTER TABLE `item` DISABLE KEYS */;
INSERT INTO `item` VALUES (1,';\' @NAME@',_binary '@RAW@',2),(2,NULL,NULL,NULL),(3,'SET',_binary '',6);
/*!40000 ALTER TABLE `item` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`owner`@`%`*/ /*!50003 TRIGGER `doubled` BEFORE INSERT ON `item` FOR EACH ROW BEGIN SET NEW.twice = 2 * NEW.id; SET NEW.name = 'a;b'; END */;;
DELIMITER ;

/*!50001 DROP VIEW IF EXISTS `named`*/;
/*!50003 DROP FUNCTION IF EXISTS `plus` */;
DELIMITER ;;
CREATE DEFINER=`owner`@`10.0.0.1` FUNCTION `plus`(n INT) RETURNS int(11)
    DETERMINISTIC
BEGIN DECLARE m INT; SET m = n + 1; RETURN m; END ;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`owner`@`%` SQL SECURITY DEFINER */
/*!50001 VIEW `named` AS select `item`.`id` AS `id` from `item` where (`item`.`name` is not null) */;
SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;
-- Dump completed

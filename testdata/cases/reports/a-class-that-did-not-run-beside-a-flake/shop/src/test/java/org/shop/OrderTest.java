package org.shop;

class OrderTest {}

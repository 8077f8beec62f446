<?php

use PHPUnit\Framework\TestCase;

final class ShopTest extends TestCase
{
    private static int $row = 0;

    public static function tearDownAfterClass(): void
    {
        self::assertNotSame(getenv('PLANTED'), 'outside');
    }

    /** With --repeat, rows of one name. */
    public function testAdds(): void
    {
        self::assertNotSame(getenv('PLANTED'), ['first-row', 'last-row'][self::$row++] ?? '');
    }

    public function testPays(): void
    {
        self::assertNotSame(getenv('PLANTED'), 'broken');
    }

    public function testShips(): void
    {
        self::assertTrue(true);
    }

    public function testReturns(): void
    {
        self::assertTrue(true);
    }
}

using System;
using System.Threading;
using NUnit.Framework;

namespace Acme.Shop
{
    [TestFixture]
    public class OrderTests
    {
        [Test] public void AddsUp() { Assert.AreEqual(1250, 2 * 625); }
        [Test] public void KeepsTheDiscount() { Assert.AreEqual(1350, 2 * 625, "cents"); }
        [Test] public void Throws() { throw new InvalidOperationException("connect ECONNREFUSED 127.0.0.1:9"); }
        [Test, Ignore("SHOP-41: no refunds yet")] public void IsIgnored() { }
        [Test] public void IsInconclusive() { Assert.Inconclusive("no printer"); }
        [Test] public void SkipsWhileRunning() { Assert.Ignore("no printer attached"); }
        [TestCase("A1", 625), TestCase("B/2", 1)] public void Prices(string sku, int cents) { Assert.AreEqual(625, cents); }
        [Test, Timeout(200)] public void NeverEnds() { Thread.Sleep(5000); }
    }

    [TestFixture]
    public class BrokenSetUp
    {
        [TestFixtureSetUp] public void Connect() { throw new Exception("the database is not up"); }
        [Test] public void NeverStarts() { }
    }

    [TestFixture]
    public class BrokenTearDown
    {
        [TearDown] public void Delete() { throw new Exception("could not delete the customer"); }
        [Test] public void PassesItself() { }
    }
}

const {Given}=require('@cucumber/cucumber'); let n=0;
Given('one',()=>{}); Given('broken',()=>{throw new Error('broken step')}); Given('flaky',()=>{n++; if(n<2) throw new Error('first')}); Given('number {int}',(x)=>{ if(x===2) throw new Error('two') }); Given('pending',()=>'pending');

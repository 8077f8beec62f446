require 'rspec/retry'

RSpec.describe 'shop' do
  planted = ENV['PLANTED']
  attempts = 0

  %w[first-row last-row].each do |row|
    it('adds') { expect(planted).not_to eq(row) }
  end

  it('sends', retry: 2) do
    attempts += 1
    expect(!%w[flaky outside].include?(planted) || attempts > 1).to be true
  end

  it('pays') { expect(planted).not_to eq('broken') }
  it('ships') { expect(true).to be true }
  after(:context) { raise 'not torn down' if planted == 'outside' }
  it('returns') { expect(true).to be true }
end

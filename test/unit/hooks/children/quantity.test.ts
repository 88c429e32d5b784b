import t from 'tap'
import { canonicalQuantity } from '../../../../hooks/children/quantity.ts'

const cases: [string | number, string][] = [
  ['1000m', '1'],
  ['1', '1'],
  [1, '1'],
  [0.5, '500m'],
  ['0.5', '500m'],
  ['1500m', '1500m'],
  ['2000', '2k'],
  ['1024Mi', '1Gi'],
  ['1.5Gi', '1536Mi'],
  ['128Mi', '128Mi'],
  ['0.5Mi', '512Ki'],
  ['1024', '1024'],
  ['0', '0'],
  ['0Mi', '0'],
  ['1e3', '1e3'],
  ['100M', '100M'],
  ['0.1G', '100M'],
  ['-500m', '-500m'],
  ['not a quantity', 'not a quantity'],
]

t.test('canonicalQuantity: returns the form that the API server stores', async (t) => {
  for (const [given, stored] of cases) t.equal(canonicalQuantity(given), stored, `${given} is ${stored}`)
})

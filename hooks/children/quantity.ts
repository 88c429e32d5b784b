/**
 * Canonical form of Kubernetes quantities, as the API server stores them: `1000m` is `1`, `1024Mi` is `1Gi`, `0.5` is
 * `500m`. A child that says it differently would look changed at every sync.
 *
 * Values that cannot be made canonical without loss (exponents, more than nine decimals) are given back as they are.
 * Source: k8s.io/apimachinery resource.Quantity, "canonical form".
 */
const decimalSuffixes: readonly string[] = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes: readonly string[] = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const form = /^([+-]?)(\d*)(?:\.(\d{0,9}))?(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?$/

export function canonicalQuantity(value: string | number): string {
  const text = String(value)
  const match = form.exec(text)
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match ?? []
  if (!match || (whole === '' && fraction === '') || whole.length > 18) return text
  const digits = BigInt(`${whole}${fraction.padEnd(9, '0')}` || '0')
  if (digits === 0n) return '0'
  const minus = sign === '-' ? '-' : ''
  return suffix.endsWith('i') ? minus + binary(digits, suffix) : minus + decimal(digits, suffix)
}

/** `nano` is the number times 10^9 in units of the suffix. */
function decimal(nano: bigint, suffix: string): string {
  let index = decimalSuffixes.indexOf(suffix) - 3
  let amount = nano
  // Three steps down make the digits whole: from here the value is amount × 1000^index.
  while (amount % 1000n === 0n && index < decimalSuffixes.length - 1) {
    amount /= 1000n
    index += 1
  }
  while (index < 0) {
    amount = (amount + 999n) / 1000n
    index += 1
  }
  return `${amount}${decimalSuffixes[index] ?? ''}`
}

function binary(nano: bigint, suffix: string): string {
  let index = binarySuffixes.indexOf(suffix)
  let amount = nano
  while (amount % 1_000_000_000n !== 0n && index > 0) {
    amount *= 1024n
    index -= 1
  }
  amount = (amount + 999_999_999n) / 1_000_000_000n
  while (amount % 1024n === 0n && index < binarySuffixes.length - 1) {
    amount /= 1024n
    index += 1
  }
  return `${amount}${binarySuffixes[index] ?? ''}`
}

/** Below zero when `a` is less, above when it is more; zero when equal, or when one of them is no quantity. */
export function compareQuantities(a: string, b: string): number {
  const difference = amountOf(a) - amountOf(b)
  return Number.isNaN(difference) ? 0 : difference
}

const amountForm = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei)|([numkMGTPE]))?$/

/** Close enough to compare: the seventeenth digit of an amount of memory is nobody's limit. */
function amountOf(text: string): number {
  const [, digits = '', exponent = '', binary = '', decimal = ''] = amountForm.exec(text) ?? []
  if (digits === '') return Number.NaN
  const amount = Number(`${digits}${exponent}`)
  if (binary !== '') return amount * 1024 ** binarySuffixes.indexOf(binary)
  return amount * 1000 ** (decimalSuffixes.indexOf(decimal) - 3)
}

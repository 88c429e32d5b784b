/**
 * Converts Kubernetes quantities to the canonical form that the API server stores: `1000m` is `1`, `1024Mi` is `1Gi`,
 * `0.5` is `500m`. A child in any other form would appear to have changed on every sync.
 *
 * Returns a value unchanged if conversion would lose precision (exponents, more than nine decimals).
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
  return suffix.endsWith('i') ? minus + formatBinary(digits, suffix) : minus + formatDecimal(digits, suffix)
}

/** Formats `nano`, which is the number times 10^9, in the suffix's unit. */
function formatDecimal(nano: bigint, suffix: string): string {
  let index = decimalSuffixes.indexOf(suffix) - 3
  let amount = nano
  // The units start three steps lower because the amount is scaled by 10^9: the value is amount × 1000^index.
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

function formatBinary(nano: bigint, suffix: string): string {
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

/**
 * Returns a negative number when `a` is smaller, a positive number when it is larger, and zero when both are equal or
 * one is not a quantity.
 */
export function compareQuantities(a: string, b: string): number {
  const difference = amountOf(a) - amountOf(b)
  return Number.isNaN(difference) ? 0 : difference
}

const amountForm = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei)|([numkMGTPE]))?$/

/** Returns an approximate number. No real memory limit depends on the 17th digit. */
function amountOf(text: string): number {
  const [, digits = '', exponent = '', binary = '', decimal = ''] = amountForm.exec(text) ?? []
  if (digits === '') return Number.NaN
  const amount = Number(`${digits}${exponent}`)
  if (binary !== '') return amount * 1024 ** binarySuffixes.indexOf(binary)
  return amount * 1000 ** (decimalSuffixes.indexOf(decimal) - 3)
}

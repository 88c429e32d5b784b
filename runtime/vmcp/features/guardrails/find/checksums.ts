/** Checksums of account and card numbers. The numbers may contain separators. */

/** Spaces and hyphens, including non-breaking forms, for a character class in a regular expression. */
export const separators = ' \\u00a0\\u202f\\u2011-'
const separator = new RegExp(`[${separators}]`, 'g')
const lastGroup = new RegExp(`[${separators}][^${separators}]*$`)

/** Countries in the IBAN registry and the lengths of their IBANs. */
const ibanLengths: Readonly<Record<string, number>> = Object.fromEntries(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 ' +
    'FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 ' +
    'LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 ' +
    'RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((row) => [row.slice(0, 2), Number(row.slice(2))]),
)

const zero = 0x30
const beforeA = 0x41 - 10

/** Returns the length of the IBAN at the start of the text. Returns 0 if the text does not start with an IBAN. */
export function ibanLength(text: string): number {
  const wanted = ibanLengths[text.slice(0, 2).toUpperCase()]
  if (wanted === undefined) return 0
  let bare = ''
  let end = 0
  while (bare.length < wanted && end < text.length) {
    const letter = text.charAt(end++)
    bare += letter.replace(separator, '')
  }
  const goesOn = /[A-Za-z0-9]/.test(text.charAt(end))
  return bare.length === wanted && !goesOn && isRight(bare.toUpperCase()) ? end : 0
}

/** Checks ISO 7064 MOD 97-10 over the rearranged number. */
function isRight(iban: string): boolean {
  let rest = 0
  for (const letter of iban.slice(4) + iban.slice(0, 4)) {
    const code = letter.charCodeAt(0)
    rest = code <= 0x39 ? (rest * 10 + code - zero) % 97 : (rest * 100 + code - beforeA) % 97
  }
  return rest === 1
}

/** First digits of payment card issuers. */
const issuers = /^(?:4|5[0-8]|2[2-7]|3[0-9]|6)/

/**
 * Returns the length of the card number at the start of the text. A different number may follow the card number as the
 * last group.
 */
export function cardLength(text: string): number {
  if (isCard(text)) return text.length
  const shorter = text.slice(0, Math.max(text.search(lastGroup), 0))
  return isCard(shorter) ? shorter.length : 0
}

/** Checks the Luhn formula (ISO/IEC 7812-1, annex B). Rejects numbers that consist of a single repeated digit. */
function isCard(text: string): boolean {
  const digits = text.replaceAll(separator, '')
  if (digits.length < 13 || digits.length > 19 || !issuers.test(digits)) return false
  if (digits === digits.charAt(0).repeat(digits.length)) return false
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - zero
    const twice = digit * 2
    sum += i % 2 === 0 ? digit : twice > 9 ? twice - 9 : twice
  }
  return sum % 10 === 0
}

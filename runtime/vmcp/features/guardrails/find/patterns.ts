/**
 * The built-in patterns. Each pattern scans text in linear time. Repetitions are bounded or cannot start within an
 * earlier repetition, and adjacent repetitions have no characters in common.
 *
 * Sources: the documentation of the vendors; RFC 7468, RFC 4880 section 6.2; RFC 7515, RFC 7516; RFC 5321 section
 * 4.5.3.1; ISO 13616 (IBAN, registry of 2025); ISO/IEC 7812-1 (card numbers).
 */
import type { RedactRule } from '../../../../../schemas/index.ts'
import { cardLength, ibanLength, separators } from './checksums.ts'

export type PatternName = NonNullable<RedactRule['patterns']>[number]

export interface BuiltInPattern {
  /** A global expression that is used with lastIndex. */
  readonly regExp: RegExp
  /** Length of the shortest possible match. */
  readonly minLength: number
  /** A string that every match contains. */
  readonly needs?: string
  /**
   * Returns the length of a candidate's valid part. If the length is 0, the search continues after the candidate's
   * first character.
   */
  readonly exact?: (found: string) => number
  /** True if a match starts at the end of the first group. The group is part of the finding. */
  readonly leads?: boolean
}

/**
 * Prefixes of keys, and the characters that may follow each prefix. A letter or digit before a prefix prevents a match.
 */
const vendorKeys = [
  'gh[pousr]_[A-Za-z0-9]{36,255}',
  'github_pat_[A-Za-z0-9_]{22,255}',
  'gl(?:pat|oas|dt|rt|cbt|ptt|ft|soat|agent|imt)-[A-Za-z0-9_.-]{20,255}',
  'A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])',
  'AIza[A-Za-z0-9_-]{35}',
  'ya29\\.[A-Za-z0-9_-]{20,2048}',
  'GOCSPX-[A-Za-z0-9_-]{28}',
  'xox[abeoprs]-[A-Za-z0-9-]{10,255}',
  'xapp-\\d-[A-Za-z0-9-]{10,255}',
  'hooks\\.slack\\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,120}',
  '(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,255}',
  'whsec_[A-Za-z0-9+/=]{24,255}',
  'sk-(?=[A-Za-z_-]{0,40}\\d)[A-Za-z0-9_-]{20,255}',
  'npm_[A-Za-z0-9]{36}',
  'pypi-[A-Za-z0-9_-]{32,255}',
  'dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}',
  'hf_[A-Za-z0-9]{30,64}',
  'gsk_[A-Za-z0-9]{40,64}',
  'xai-[A-Za-z0-9]{60,100}',
  'do[opr]_v1_[a-f0-9]{64}',
  'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}',
  'SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}',
  'ATATT3[A-Za-z0-9_=-]{20,255}',
  'dapi[a-f0-9]{32}',
  'hv[bsr]\\.[A-Za-z0-9_-]{24,300}',
  '[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{40,120}',
  'gl(?:sa|c)_[A-Za-z0-9_=+/-]{20,255}',
  'lin_(?:api|oauth)_[A-Za-z0-9]{32,64}',
  'ntn_[A-Za-z0-9]{40,64}',
  'sq0(?:atp|csp)-[A-Za-z0-9_-]{22,64}',
  'NRAK-[A-Z0-9]{27}',
  'PMAK-[a-f0-9]{24}-[a-f0-9]{34}',
  'pul-[a-f0-9]{40}',
  'dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9_.-]{40,64}',
  'pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.-]{32,64}',
  'rubygems_[a-f0-9]{48}',
  'sntrys_[A-Za-z0-9+/=_-]{40,400}',
  'sntryu_[a-f0-9]{64}',
  'tskey-[a-z]{1,12}-[A-Za-z0-9-]{20,100}',
  'AGE-SECRET-KEY-1[A-Z0-9]{58}',
]

const armored = '(?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----'

export const patterns: Readonly<Record<PatternName, BuiltInPattern>> = {
  apiKey: {
    regExp: new RegExp(`(?<![A-Za-z0-9])(?:${vendorKeys.join('|')})`, 'g'),
    minLength: 20,
  },
  privateKey: {
    // Without an end marker, match as far as a key can extend, because a truncated key is a secret too.
    regExp: new RegExp(
      `-----BEGIN ${armored}(?:[^-]|-(?!----)){0,12000}(?:-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?`,
      'g',
    ),
    minLength: 27,
    needs: '-----BEGIN ',
  },
  jwt: {
    // A token that is truncated within the second part is a secret too.
    regExp:
      /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4096}\.(?:[A-Za-z0-9_-]{0,16384}\.[A-Za-z0-9_-]{0,4096}(?:\.[A-Za-z0-9_-]{1,4096}){0,2}|eyJ[A-Za-z0-9_-]{4,16384})/g,
    minLength: 13,
    needs: 'eyJ',
  },
  email: {
    // Look back from each @. The length of the preceding text then does not matter.
    regExp:
      /(?<=([\p{L}\p{N}_][\p{L}\p{N}._%+'-]{0,63}))(?:[@＠]|%40)(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}(?:xn--[a-z0-9-]{1,59}|\p{L}{2,24})(?![\p{L}\p{N}])/giu,
    leads: true,
    minLength: 6,
  },
  iban: {
    regExp: new RegExp(`(?<![A-Za-z0-9])[A-Za-z]{2}\\d{2}(?:[${separators}]?[A-Za-z0-9]){11,31}`, 'g'),
    minLength: 15,
    exact: ibanLength,
  },
  paymentCard: {
    regExp: new RegExp(
      `(?<![A-Za-z0-9])(?<!\\d\\.)(?:\\d{13,19}|\\d{4}([${separators}])\\d{4}\\1\\d{4}\\1\\d{1,4}(?:\\1\\d{1,3})?|\\d{4}([${separators}])\\d{6}\\2\\d{4,5})(?![A-Za-z0-9])(?!\\.\\d)`,
      'g',
    ),
    minLength: 13,
    exact: cardLength,
  },
}

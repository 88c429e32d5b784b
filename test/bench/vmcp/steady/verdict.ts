/** The verdict of a benchmark of steadiness: each rule with its measured figures, and whether all rules are met. */
export interface Rule {
  /** The rule, with its figures. */
  readonly what: string
  readonly isMet: boolean
}

export interface Measured {
  /** Tables, then the verdict. */
  readonly text: string
  readonly isGood: boolean
}

export function withVerdict(name: string, tables: string, rules: readonly Rule[]): Measured {
  const isGood = rules.every(({ isMet }) => isMet)
  const lines = rules.map(({ what, isMet }) => `- ${isMet ? 'met' : '**not met**'}: ${what}`)
  return {
    text: [tables, '', ...lines, `- verdict of ${name}: ${isGood ? 'good' : 'FAILED'}`].join('\n'),
    isGood,
  }
}

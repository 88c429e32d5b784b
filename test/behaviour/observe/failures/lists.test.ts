/** Causes each failure on a running server. Five views must report it alike. */
import t from 'tap'
import { listFailures } from '../../../helpers/failures/lists.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, listFailures)

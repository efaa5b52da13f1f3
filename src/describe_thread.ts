/** The thread that describes a product, so that requests are answered meanwhile. It ends when it has. */
import type { Texts } from './core/description/texts.ts';
import { answerTasks } from './core/threads/answer_tasks.ts';
import { describe } from './describe.ts';
import { products } from './products.ts';
import type { Product } from './webhooks/product.ts';

export interface Asked {
  /** The index of the product. */
  nth: number;
  base_url: string;
}

answerTasks<Asked, Texts>(({ nth, base_url }) => describe(products[nth] as Product, products, base_url));

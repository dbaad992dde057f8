"""Encoders of a few thousand weights, drawn at random, with tokenisers of their own.

They stand for RoBERTa, XLNet and BERT where only the path through the code matters.
"""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXTS = ["the cat sat on the mat", "a dog", "", "regulation of the council on imports of rice " * 5]
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}


def roberta(folder, texts=TEXTS, size=320, layers=3):
    """Byte-level BPE and marks <s> </s>, as RoBERTa has them."""
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=marks, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    RobertaTokenizerFast(tokenizer_object=made).save_pretrained(folder)
    config = RobertaConfig(
        vocab_size=made.get_vocab_size() + 10,
        num_hidden_layers=layers,
        max_position_embeddings=330,
        pad_token_id=1,
        **SIZES,
    )
    _drawn(RobertaModel, config, folder)


def xlnet(folder, texts=TEXTS, size=60, layers=3):
    """Unigram pieces and marks <sep> <cls> at the end, as XLNet has them."""
    from transformers import PreTrainedTokenizerFast, XLNetConfig, XLNetModel

    marks = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=marks, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="$A <sep> <cls>", special_tokens=[("<sep>", 4), ("<cls>", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", padding_side="left"
    ).save_pretrained(folder)
    size = max(made.get_vocab_size(), 60) + 10
    config = XLNetConfig(vocab_size=size, d_model=16, n_layer=layers, n_head=2, d_inner=24)
    _drawn(XLNetModel, config, folder)


def bert(folder, texts=TEXTS, size=320, layers=3):
    """Words with the marks [CLS] and [SEP], as MiniLM has them."""
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=marks, show_progress=False)
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    size = max(made.get_vocab_size(), 60) + 10
    _drawn(BertModel, BertConfig(vocab_size=size, num_hidden_layers=layers, **SIZES), folder)


def _drawn(model, config, folder):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model(config).save_pretrained(folder)
